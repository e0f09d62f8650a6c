"""The page of `bayplan run`: implements the port `bayplan.serving.page`."""

from typing import final

from aiohttp import web

from bayplan.serving.http_server import Handler
from bayplan.serving.page import PageSources
from bayplan.ui.live import SchedulerSubject
from bayplan.ui.server import application, refuse_foreign_origin


@final
class LivePage:
    """Implements serving.page.Page."""

    def __init__(self, sources: PageSources) -> None:
        self.subject = SchedulerSubject(sources)

    def application(self) -> web.Application:
        """The endpoints decide who may read the page, so the page needs no token of its own."""
        app = application([self.subject])
        app.middlewares.insert(0, _own_pages_only)
        return app

    def start(self) -> None:
        self.subject.begin()

    async def stop(self, reason: str) -> None:
        await self.subject.end(reason)


@web.middleware
async def _own_pages_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests of pages of another host, which may not use the cookie of this one."""
    refusal = refuse_foreign_origin(request.headers)
    if refusal:
        return web.Response(status=403, text=refusal + "\n")
    return await handler(request)
