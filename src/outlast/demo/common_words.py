"""Words that every English text has, and those that this reference uses all over without speaking of them."""

from __future__ import annotations

_LINES = """
    about above access according actual actually added additional additionally after again against all allow
    allowed allows along already also although always and another any anything appear appears apply appropriate
    arbitrary are around associated available based because become becomes been before begin behave behaves
    being below best better between both but call called calling calls can cannot case cases cause causes
    certain change changed changes clear common commonly complete consider considered consists contain contained
    containing contains convert converted correct corresponding could created creating current currently define
    defined defines defining depend depending depends described describes description did differ different
    directly discussed display does done down due during e.g each earlier easily effect either else empty end
    enough entire equivalent especially etc even ever every everything exactly example examples except exist
    exists explained explicit explicitly extra false far few final finally find first five following follows for
    form forms found four from full fully further future general generally get gets give given gives goes had
    handle happen happens hard has have having hence here high higher how however i.e identical ignored
    immediately implement implemented implements important include included includes including increase indicate
    indicated indicates information initial inside instead intended into its itself just keep kept kind kinds
    known large last late later latter least leave left less let like likely long longer look looked looks made
    main make makes making many mark matching may mean meaning means meant mentioned might modify more moreover
    most much multiple must near necessarily necessary need needed needs neither never new next non normal
    normally not note noted nothing now number numbers obtain obtained occur occurs off often old omitted once
    one ones only onto optional order original other others otherwise our out outer over own page part
    particular passed passing per perform performed performs place placed point position possible possibly
    preceded preceding present previous previously primarily produce produced produces program proper properly
    provide provided provides purpose put quite raise raised raises raising rather read really reason recent
    refer referred refers regardless related relevant remain remaining remains represent represented
    representing represents require required requires respective respectively result resulting results return
    returned returning returns right rule rules said same second section sections see seem self separate
    separated set sets several shall should show shown side similar similarly simple simplest simply since
    single six some something sometimes soon special specific specifically specified specifies specify sstore
    standard start starting starts step still stored such suitable supply support supported supporting supports
    take taken takes taking term terms than that the their them themselves then there therefore these they thing
    things this those though three through thus time times together too top toward treat treated treats true try
    turn two type types typical typically unavailable unchanged under unless until upon usage use used useful
    uses using usual usually value values variety various version versions very via want was way ways well were
    what whatever when whenever where whereas whether which while who whole whose why will with within without
    word words work works would written yet you your zero
"""

COMMON_WORDS = frozenset(_LINES.split())
"""In lower case; no index needs them."""
