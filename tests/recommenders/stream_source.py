"""A source of events in memory, for tests."""

from pathdex.data.events import Event, EventBatch
from pathdex.data.item_changes import AddItem, RemoveItem


class ListSource:
    """Delivers a list; reads return at most `chunk` events. With `endless`, it never ends."""

    def __init__(self, events, chunk=10**9, endless=False):
        self.events = [one if isinstance(one, AddItem | RemoveItem) else Event(*one) for one in events]
        self.chunk, self.endless = chunk, endless
        self.at, self.acknowledged = 0, []

    def seek(self, position):
        self.at = 0 if position is None else position["at"]

    def read(self, max_events, timeout):
        if self.at == len(self.events) and not self.endless:
            return None
        found = self.events[self.at : self.at + min(max_events, self.chunk)]
        self.at += len(found)
        return EventBatch(found, {"source": "list", "at": self.at})

    def acknowledge(self, position):
        self.acknowledged.append(position["at"])

    def lag(self):
        return len(self.events) - self.at

    def close(self):
        pass
