"""FastAPI: a request publishes a job, a worker does it, and the browser hears of it over a WebSocket.

    uvicorn fastapi_shop:api          # in earnest
    python fastapi_shop.py 127.0.0.1:9092

Run as a program it starts the server, asks it once as a browser would, and ends.
"""

import asyncio
import sys
import uuid
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, WebSocket
from pydantic import BaseModel
from websockets.asyncio.client import connect

import postroad

run = uuid.uuid4().hex[:8]
jobs, news = f"pictures-{run}", f"news-{run}"
app = postroad.App(sys.argv[1] if len(sys.argv) > 1 else None)
browsers: set[WebSocket] = set()


class Picture(BaseModel):
    name: str


@app.worker(f"resize-{run}", topic=jobs)
async def resize(picture: Picture, message: postroad.Message) -> None:
    message.publish(news, {"resized": picture.name})


async def tell_browsers() -> None:
    """Every process of the server reads all news, in a group of its own, and tells its browsers."""
    async for record in app.subscribe(news, group=f"web-{uuid.uuid4().hex}", of=dict):
        for browser in list(browsers):
            await browser.send_json(record.value)


@asynccontextmanager
async def lifespan(_: FastAPI):
    async with app:
        telling = asyncio.create_task(tell_browsers())
        working = asyncio.create_task(app.work())  # or elsewhere, by `postroad worker fastapi_shop`
        yield
        app.stop()
        await working
        telling.cancel()


api = FastAPI(lifespan=lifespan)


@api.post("/pictures", status_code=202)
async def add(picture: Picture) -> dict[str, str]:
    await app.publish(jobs, picture)
    return {"queued": picture.name}


@api.websocket("/news")
async def listen(browser: WebSocket) -> None:
    await browser.accept()
    browsers.add(browser)
    try:
        await browser.receive_text()  # until it hangs up
    except Exception:
        browsers.discard(browser)


async def try_it() -> None:
    server = uvicorn.Server(uvicorn.Config(api, port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)  # uvicorn has no event for it
    port = server.servers[0].sockets[0].getsockname()[1]
    async with connect(f"ws://127.0.0.1:{port}/news") as browser:
        body = b'{"name":"cat.jpg"}'
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /pictures HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        print("answered", (await reader.read()).splitlines()[-1].decode())
        writer.close()
        print("the browser hears", await browser.recv())
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(try_it())
