from __future__ import annotations

from web.site import Site, final


async def test_smoke(site: Site) -> None:
    async with site.working():
        job = await site.submit()
        done = await site.until(job["id"], final)
        assert done["state"] == "completed"
        assert (await site.call("GET", f"/v1/jobs/{job['id']}/result")).json == "hello"
