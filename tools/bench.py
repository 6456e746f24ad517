"""Prints how fast the book is: drawing, loading, and the time from a key to the changed picture.

Run by `make bench` on a built book. Every page is opened afresh with an empty cache.
"""

import contextlib
import io
import random
import statistics
import sys
import threading
import time
from base64 import b64decode

from playwright.sync_api import sync_playwright

import browser as browsers
import pages
from servesim.live import Figure
from servesim.svg import pack

sys.path.append(str(pages.ROOT / "tests"))
from chapters import CHAPTERS, figures  # noqa: E402

REPEATS = 5
MOVES = 80  # of each kind on a page
HOLD_MS = 40, 75  # how long a finger stays on a key; any time, so that it meets no rhythm
PAUSE_MS = 80, 150  # between two looks at the figure: the browser has come to rest
REPEAT_MS = 25, 40  # between the repeats of a key held down: each waits for the next frame
SLOW = dict(  # a slow mobile line
    offline=False, latency=150, downloadThroughput=1.6e6 / 8, uploadThroughput=0.75e6 / 8
)

# The least that a figure can be: what this machine and browser take for any change at all.
BARE = """data:text/html,<!doctype html><div class="live" data-ready="yes"><p>0</p>
<input type="range" max="20" value="0" style="width:600px"><i class="live-pack"></i></div><script>
document.querySelector('input').oninput = (e) => { e.target.previousElementSibling.textContent =
e.target.value }</script>"""

# From a trusted event to the end of the painting of the new picture. A key released before that
# would hold the message back for another frame.
WATCH = """() => {
  window.latencies = [];
  let began = 0;
  const mark = (event) => { if (event.isTrusted) began = event.timeStamp; };
  for (const kind of ['keydown', 'pointermove']) addEventListener(kind, mark, true);
  const figure = document.querySelector('.live:has(.live-pack)');
  new MutationObserver(() => {
    if (!began) return;
    const from = began;
    began = 0;
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => latencies.push(performance.now() - from);
      channel.port2.postMessage(0);
    });
  }).observe(figure, {childList: true, subtree: true});
}"""
READY = """
new MutationObserver((_, observer) => {
  if (!document.querySelector('[data-ready="yes"]')) return;
  window.ready = performance.now();
  observer.disconnect();
}).observe(document, {subtree: true, childList: true, attributes: true,
                      attributeFilter: ['data-ready']});
"""


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def load(chromium, url: str, network: dict | None) -> tuple[float, float]:
    """(s until a figure can be moved, kB transferred without the theme) of one cold visit."""
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    page = context.new_page()
    page.add_init_script(READY)
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    if network:
        session.send("Network.emulateNetworkConditions", network)
    names, sizes = {}, {}
    session.on("Network.requestWillBeSent", lambda e: names.update({e["requestId"]: e["request"]}))
    session.on(
        "Network.loadingFinished", lambda e: sizes.update({e["requestId"]: e["encodedDataLength"]})
    )
    page.goto(url, wait_until="load")
    page.wait_for_function("window.ready")
    page.wait_for_load_state("networkidle")
    ready_s = page.evaluate("window.ready") / 1e3
    context.close()
    own = ("/live.", "/ask.", "/book.")
    kept = (
        size
        for key, size in sizes.items()
        if "/_static/" not in names[key]["url"] or any(part in names[key]["url"] for part in own)
    )
    return ready_s, sum(kept) / 1e3


def latencies_ms(chromium, url: str) -> tuple[list[float], list[float]]:
    """Times to the painted change: of single keys and steps of a drag, and of a key held down."""
    page = chromium.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(url)
    page.wait_for_selector('.live[data-ready="yes"]')
    slider = page.locator(".live:has(.live-pack) input[type=range]").first
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(1500)  # the page glides to the slider
    page.evaluate(WATCH)
    steps = int(slider.get_attribute("max"))
    places = [i % (2 * steps) for i in range(1, MOVES + 1)]  # to the end and back, and again
    keys = ["ArrowRight" if 0 < place <= steps else "ArrowLeft" for place in places]
    draw = random.Random(1).uniform
    for key in keys:
        page.keyboard.press(key, delay=draw(*HOLD_MS))
        page.wait_for_timeout(draw(*PAUSE_MS))
    page.keyboard.press("Home")
    page.wait_for_timeout(500)
    box = slider.bounding_box()
    x, y, step = box["x"] + 8, box["y"] + box["height"] / 2, (box["width"] - 16) / steps
    page.mouse.move(x, y)
    page.mouse.down()
    for place in places:
        page.mouse.move(x + step * min(place, 2 * steps - place), y)
        page.wait_for_timeout(draw(*PAUSE_MS))
    page.mouse.up()
    single = page.evaluate("latencies")
    page.keyboard.press("Home")
    page.wait_for_timeout(500)
    page.evaluate("latencies.length = 0")
    for key in keys:
        page.keyboard.down(key)
        page.wait_for_timeout(draw(*REPEAT_MS))
    held = page.evaluate("latencies")
    page.close()
    return single, held


def chapter_row(chromium, address: str, chapter: str) -> str:
    """One line of the table: loading, weight and latency of a chapter's page."""
    url = f"{address}/chapters/{chapter}.html"
    quick = [load(chromium, url, None) for _ in range(REPEATS)]
    slow_s = statistics.median(load(chromium, url, SLOW)[0] for _ in range(3))
    quick_s, weight = statistics.median(s for s, _ in quick), quick[0][1]
    return f"{chapter:22} {quick_s:8.2f} {slow_s:9.2f} {weight:8.0f} {paint(chromium, url)}"


def paint(chromium, url: str) -> str:
    """The columns of the table about latency."""
    return " ".join(
        f"{len(times):7d} {statistics.median(times):9.1f} {percentile(times, 0.95):8.1f}"
        for times in latencies_ms(chromium, url)
    )


def drawing_row(stem: str, figure: Figure) -> str:
    """One line: the frames of a figure, the time of each, and what they weigh in the page."""
    inside = []  # s spent in the author's draw function: simulating, and telling matplotlib
    draw = figure.draw

    def timed(*arguments, **values):
        began = time.perf_counter()
        note = draw(*arguments, **values)
        inside.append(time.perf_counter() - began)
        return note

    figure.draw = timed
    figure._frames.clear()
    figure._axis_pieces.clear()
    began = time.perf_counter()
    frames = [figure.frame(where) for where in figure.grid()]
    total_s = time.perf_counter() - began
    packed = len(b64decode(pack(frames))) / 1e3
    per_frame = total_s / len(frames) * 1e3
    return (
        f"{stem:22} {len(frames):6d} {per_frame:9.1f} {sum(inside) / len(frames) * 1e3:9.1f}"
        f" {packed:8.1f}   {figure.label[:44]}"
    )


def main() -> None:
    print(f"{'drawing':22} {'frames':>6} {'ms/frame':>9} {'in draw':>9} {'kB':>8}")
    for chapter in CHAPTERS:
        with contextlib.redirect_stdout(io.StringIO()):  # what the chapter's own cells print
            drawn = figures(chapter)
        for figure in drawn:
            print(drawing_row(chapter.stem, figure), flush=True)
    moved = f" {'n':>7} {'median':>9} {'p95':>8}"
    print(f"\n{'':49} {'to paint, ms: one move':>26} {'a key held down':>26}")
    print(f"{'page':22} {'ready, s':>8} {'1.6 Mbit':>9} {'kB':>8}{moved}{moved}")
    with sync_playwright() as playwright, pages.server(port=0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{running.server_port}"
        chromium = playwright.chromium.launch(
            executable_path=browsers.bring(playwright), args=browsers.FLAGS
        )
        print(f"{'a bare slider':49} {paint(chromium, BARE)}", flush=True)
        for chapter in CHAPTERS:
            print(chapter_row(chromium, address, chapter.stem), flush=True)
        chromium.close()
        running.shutdown()


if __name__ == "__main__":
    main()
