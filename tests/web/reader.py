"""A reader with a browser that can reach nothing but the book."""

from playwright.sync_api import Browser, Page

from servesim.live import Figure

AWAKE = """[...document.querySelectorAll('.live:has(.live-pack), .ask')].every(
    part => part.dataset.ready === 'yes')"""


class Reader:
    """One window. Keeps what it had to refuse and what went wrong on the pages it opened."""

    def __init__(self, browser: Browser, home: str, **settings):
        self.home, self.refused, self.errors = home, [], []
        self.context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 1000}} | settings
        )
        self.context.route("**/*", self._only_the_book)
        self.page: Page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._console)

    def _only_the_book(self, route):
        if route.request.url.startswith((self.home, "data:", "blob:")):
            route.continue_()
        else:
            self.refused.append(route.request.url)
            route.abort()

    def _console(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def open(self, name: str) -> Page:
        """Open a page of the book and wait until its figures and questions are awake."""
        self.page.goto(f"{self.home}/{name}", wait_until="load")
        self.page.wait_for_function(AWAKE, polling=50)  # a hidden page draws no frames to poll by
        return self.page


def put(page: Page, figure: Figure, where: tuple[int, ...]) -> str:
    """Set the controls of a figure as a script would; return the sentence that stands under it."""
    return page.evaluate(
        """([key, where]) => {
            const figure = document.getElementById(key);
            [...figure.querySelectorAll('.live-row')].forEach((row, i) => {
                const range = row.querySelector('input[type=range]');
                const select = row.querySelector('select');
                if (range) range.value = where[i];
                else if (select) select.selectedIndex = where[i];
                else row.querySelectorAll('input')[where[i]].checked = true;
            });
            figure.dispatchEvent(new Event('input'));
            return figure.querySelector('.live-note').textContent;
        }""",
        [figure.key, list(where)],
    )


def note(page: Page, figure: Figure) -> str:
    return page.locator(f"#{figure.key} .live-note").text_content()


def picture(page: Page, figure: Figure) -> str:
    return page.locator(f"#{figure.key} svg").inner_html()
