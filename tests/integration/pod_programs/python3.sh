cat > a.py <<'END'
import asyncio, concurrent.futures, fcntl, mmap, multiprocessing, os, pwd, socket, sqlite3, subprocess, tempfile
from multiprocessing import shared_memory


def square(n):
    return n * n


async def talk():
    async def served(reader, writer):
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()
    server = await asyncio.start_server(served, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"x\n")
    assert await reader.readline() == b"x\n"
    child = await asyncio.create_subprocess_exec("true")
    assert await child.wait() == 0


if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(square, range(100))) == 328350
    for kind in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(kind).Pool(2) as pool:
            assert pool.map(square, range(4)) == [0, 1, 4, 9]
    shared = shared_memory.SharedMemory(create=True, size=4096)
    shared.close()
    shared.unlink()
    asyncio.run(talk())
    assert subprocess.run(["sh", "-c", "exit 3"], start_new_session=True).returncode == 3
    with tempfile.NamedTemporaryFile() as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        os.posix_fallocate(f.fileno(), 0, 8192)
        mmap.mmap(f.fileno(), 8192).close()
    os.mkfifo("fifo")
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    os.nice(1)
    os.openpty()
    for fd in (os.memfd_create("x"), os.pidfd_open(os.getpid())):
        os.close(fd)
    base = sqlite3.connect("base")
    assert base.execute("pragma journal_mode=wal").fetchone() == ("wal",)
    base.execute("create table t (a)")
    base.commit()
    socket.socketpair()
    user = pwd.getpwuid(os.getuid())
    assert (user.pw_name, user.pw_dir) == ("agent", "/home/agent") and os.path.expanduser("~") == "/home/agent", user
    print("hello")
END
python3 a.py
