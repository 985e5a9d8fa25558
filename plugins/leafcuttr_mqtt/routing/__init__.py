"""From publishers to subscribers: sessions by client id, retained messages, shared subscriptions, wills, and the turns
in which messages are stored."""
