"""What runs in the place of a service whose port is not opened."""

import trio


class Closed:
    """Imports nothing of the extra that the service itself would need."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await trio.sleep_forever()
