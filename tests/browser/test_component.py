from browser.host import MOUNT
from playwright.sync_api import expect

def test_smoke(server, person):
    ann = person()
    job_id = server.submit(ann.name)
    page = ann.open(server.page(f'<outlast-job href="{MOUNT}/v1/jobs/{job_id}"></outlast-job>'))
    el = page.locator("outlast-job")
    expect(el).to_contain_text("In progress")
    page.screenshot(path="/tmp/shots/component/smoke.png")
    server.open(job_id, "Text")
    expect(el.locator("a.open")).to_be_visible()
    server.open(job_id)
    expect(el).to_contain_text("Completed")
    print(ann.said)
    for r in server.requests: print(r.method, r.path, r.query, r.status, r.open)
    assert not ann.said
