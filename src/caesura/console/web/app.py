"""The routes of the console; what is shown comes from what it watches."""

from __future__ import annotations

from functools import partial
from importlib.resources import files

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from caesura.console.web.access import Access, GuardedPages
from caesura.console.web.debugging import DebugPage
from caesura.console.web.layout import place
from caesura.console.web.looks import Looks
from caesura.console.web.own_page import OwnPage
from caesura.console.web.pages import Ways, check_page, panel, plan_page, told
from caesura.console.web.plan_view import changing
from caesura.console.web.speaking import feedback_page, form_of, said
from caesura.console.web.sql_page import SqlPage
from caesura.console.web.time_page import TimePage
from caesura.console.web.tracing import TracePage
from caesura.console.web.updates import Texts, Updates
from caesura.console.web.watched import Watched
from caesura.errors import RAISED, CaesuraError, failure

KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
MAX_SCRIPT = 262_144
"""Bytes of a form with a script."""
STATIC = ("console.css", "console.js", "icon.svg")


class Console:
    """The pages of one query."""

    def __init__(self, watched: Watched, access: Access) -> None:
        self.watched, self.access = watched, access
        self.looks, self.updates = Looks(watched.figures), Updates()
        self._placed = place(watched.shape)
        self._checked: str | None = None
        """The page of the check; a plan does not change."""
        folder = files("caesura.console.web") / "static"
        self._static = {name: (folder / name).read_bytes() for name in STATIC}
        routes = [
            Route("/", self.plan if watched.shape.steps or watched.times is None else self.to_time),
            Route("/stream", self.stream),
            Route("/static/{name}", self.static),
        ]
        if watched.times is not None:
            self._times = TimePage(watched.name, watched.times)
            routes += [Route("/time", self.time), Route("/stream/time", self.time_stream)]
        if watched.speaker is not None:
            routes.append(Route("/feedback", self.feedback, methods=["GET", "POST"]))
        if watched.nodes:
            routes.append(Route("/check", self.check))
        if watched.tracer is not None:
            self._traces = TracePage(watched.name, watched.tracer)
            routes.append(Route("/trace", self.trace, methods=["GET", "POST"]))
        if watched.stretch is not None:
            steps = [step.label for step in watched.shape.steps]
            self._debug = DebugPage(watched.name, watched.stretch, steps, watched.stream)
            routes.append(Route("/debug", self.debug, methods=["GET", "POST"]))
            routes.append(Route("/debug/test", self.saved_test, methods=["POST"]))
        if watched.script is not None:
            self._sql = SqlPage(watched.name, watched.script)
            routes.append(Route("/sql", self.sql, methods=["GET", "POST"]))
        for own in watched.pages:
            self._static |= {f"{own.name}.css": own.styles.encode()} if own.styles else {}
            methods = ["GET", "POST"] if own.answer is not None else ["GET"]
            routes.append(Route(own.path, partial(self.own, own), methods=methods))
            routes.append(Route(f"/stream{own.path}", partial(self.own_stream, own)))
        answers = {404: self.missing, 405: self.missing, CaesuraError: self.failed, TimeoutError: self.slow}
        answers |= {Exception: self.broken}
        self.app = GuardedPages(Starlette(routes=routes, exception_handlers=answers), access)

    @property
    def ways(self) -> Ways:
        """The pages that there are for this query."""
        planned = [("/", "Plan")] if self.watched.shape.steps or self.watched.times is None else []
        ways = [*planned, *((own.path, own.title) for own in self.watched.pages)]
        if self.watched.times is not None:
            ways.append(("/time", "Time"))
        if self.watched.speaker is not None:
            ways.append(("/feedback", "Feedback"))
        if self.watched.nodes:
            ways.append(("/check", "Check"))
        if self.watched.tracer is not None:
            ways.append(("/trace", "Trace"))
        if self.watched.stretch is not None:
            ways.append(("/debug", "Debug"))
        if self.watched.script is not None:
            ways.append(("/sql", "SQL"))
        return ways

    def plan(self, request: Request) -> Response:
        """The plan as it runs; called on a thread of its own."""
        looked_at = request.query_params.get("look", "")
        return _html(plan_page(self.watched, self._placed, self.looks.take(), looked_at, self.ways))

    async def stream(self, request: Request) -> Response:
        """What changes on the plan's page."""
        looked_at = request.query_params.get("look", "")
        return self.updates.stream(lambda: self._texts(looked_at))

    def _texts(self, looked_at: str) -> Texts:
        look = self.looks.take()
        return {**dict(changing(self.watched.shape, look)), "panel": panel(self.watched, look, looked_at)}

    async def to_time(self, request: Request) -> Response:
        """The first page of what has no plan: a folder that was written."""
        return RedirectResponse("/time", 303)

    def time(self, request: Request) -> Response:
        """The output, arrivals, late rows, epochs and claims."""
        return _html(self._times.page(self.ways, request.query_params))

    async def time_stream(self, request: Request) -> Response:
        """What changes on the page of time."""
        asked = dict(request.query_params)
        return self.updates.stream(lambda: dict(self._times.parts(asked)))

    async def feedback(self, request: Request) -> Response:
        """What stands, and a form to say more."""
        form = await form_of(request) if request.method == "POST" else None
        return _html(await run_in_threadpool(self._spoken, form))

    def _spoken(self, form: dict[str, str] | None) -> str:
        speaker, message = self.watched.speaker, ""
        assert speaker is not None
        if form is not None:
            try:
                message = said(speaker, form)
            except CaesuraError as error:
                message = str(error)
        look, name = self.looks.take(), self.watched.name
        only = self.access.read_only
        return feedback_page(name, speaker, look, self.ways, message=message, read_only=only)

    def check(self, request: Request) -> Response:
        """Whether state stays bounded and answers come out, and the plan in words."""
        if self._checked is None:
            self._checked = check_page(self.watched, self.ways)
        return _html(self._checked)

    async def trace(self, request: Request) -> Response:
        """What became of some rows."""
        form = await form_of(request) if request.method == "POST" else None
        only = self.access.read_only
        return _html(await run_in_threadpool(self._traces.page, self.ways, form, read_only=only))

    async def debug(self, request: Request) -> Response:
        """A stretch of the input, looked into."""
        form = await form_of(request) if request.method == "POST" else None
        only = self.access.read_only
        return _html(await run_in_threadpool(self._debug.page, self.ways, form, read_only=only))

    async def saved_test(self, request: Request) -> Response:
        """The stretch as a test, to be kept."""
        text = await run_in_threadpool(self._debug.saved, await form_of(request))
        kept = {"Content-Disposition": 'attachment; filename="test_recorded_stretch.py"'}
        return Response(text, media_type="text/x-python", headers=kept)

    async def sql(self, request: Request) -> Response:
        """A script of SQL, edited and previewed."""
        form = await form_of(request, MAX_SCRIPT) if request.method == "POST" else None
        return _html(await run_in_threadpool(self._sql.page, self.ways, form))

    async def own(self, page: OwnPage, request: Request) -> Response:
        """A page of the user's own."""
        form = await form_of(request) if request.method == "POST" else None
        return _html(await run_in_threadpool(self._own, page, form))

    def _own(self, page: OwnPage, form: dict[str, str] | None) -> str:
        try:
            return page.page(self.watched.name, self.ways, self.looks.take(), form)
        except CaesuraError:
            raise
        except RAISED as error:
            raise failure(error).at(page.title, "") from error

    async def own_stream(self, page: OwnPage, request: Request) -> Response:
        """What changes on it."""
        return self.updates.stream(lambda: dict(page.parts(self.looks.take())))

    async def static(self, request: Request) -> Response:
        """A file of ours, by its name alone."""
        name = request.path_params["name"]
        if name not in self._static:
            return _html(told("Not here", "There is no such file."), 404)
        return Response(self._static[name], media_type=KINDS[name.rpartition(".")[2]])

    async def missing(self, request: Request, error: Exception) -> Response:
        """There is no such page."""
        return _html(told("Not here", "There is no such page."), 404)

    async def slow(self, request: Request, error: Exception) -> Response:
        """A form did not come in time."""
        return _html(told("Too slow", "The form did not come in time; send it again."), 408)

    async def failed(self, request: Request, error: Exception) -> Response:
        """What is watched cannot be read; why is told as it is."""
        return _html(told("Not to be read", str(error)), 500)

    async def broken(self, request: Request, error: Exception) -> Response:
        """A page cannot be made; its trace goes to the log of the process."""
        return _html(told("Not to be shown", str(failure(error))), 500)


def _html(page: str, code: int = 200) -> Response:
    return Response(page, code, media_type="text/html")
