"""Metrics of the broker as a whole, its disk and its process. Their values are read in
`leafcuttr.server.admin.readings`."""

from leafcuttr_sdk.metrics import counter, gauge, histogram, info

BUILD = info(
    "leafcuttr_build_info",
    "Version of the broker and of Python, in labels.",
    "version",
    "python",
)
BROKER_STATE = gauge(
    "kafka_server_kafkaserver_brokerstate",
    "The broker's state in Kafka's numbers: 3 is running, 7 is stopping.",
)
HEALTH = gauge(
    "leafcuttr_health_check",
    "1 for a health check that is fine, 0 for one that is not; /health has the details.",
    "check",
)
LOOP_DELAY = histogram(
    "leafcuttr_loop_delay_seconds",
    "How late the event loop came to a task that was due: a sample every tenth of a second while the broker works, one "
    "a second while it is idle.",
)
START_SECONDS = gauge(
    "leafcuttr_log_load_seconds",
    "How long the last start took to load, and if need be recover, all partitions.",
)
CLEAN_START = gauge(
    "leafcuttr_clean_start",
    "1 if the broker before this start had stopped cleanly, 0 if it had been killed.",
)
RECOVERED_PARTITIONS = gauge(
    "leafcuttr_recovered_partitions",
    "Partitions of which the last start had to read records again.",
)
RECOVERED_BYTES = gauge(
    "leafcuttr_recovered_bytes",
    "Bytes that the last start read again to recover partitions.",
)
WRITES_REFUSED = gauge(
    "leafcuttr_writes_refused",
    "1 while clients may not produce because the disk has less free space than lc.log.min.free.bytes.",
)
DISK_SIZE = gauge(
    "leafcuttr_disk_size_bytes",
    "Size of the file system that holds the data directory.",
)
DISK_FREE = gauge(
    "leafcuttr_disk_free_bytes",
    "Bytes of that file system that the broker may still use.",
)
OPEN_LOG_FILES = gauge(
    "leafcuttr_open_log_files",
    "Files of logs that are kept open.",
)
CLEANER_ROUNDS = counter(
    "leafcuttr_cleaner_rounds_total",
    "Rounds of compaction that have ended.",
)
CLEANER_READ = counter(
    "leafcuttr_cleaner_read_bytes_total",
    "Bytes that compaction has read.",
)
CLEANER_WRITTEN = counter(
    "leafcuttr_cleaner_written_bytes_total",
    "Bytes that compaction has written.",
)
CLEANER_REMOVED = counter(
    "leafcuttr_cleaner_removed_records_total",
    "Records that compaction has removed.",
)
CLEANER_SECONDS = counter(
    "leafcuttr_cleaner_busy_seconds_total",
    "Time that rounds of compaction took, waits for log.cleaner.io.max.bytes.per.second among them.",
)
CLEANER_WORKING = gauge(
    "leafcuttr_cleaner_working",
    "Partitions that are being compacted now.",
)
UNCLEANABLE = gauge(
    "kafka_log_logcleanermanager_uncleanable_partitions",
    "Partitions that compaction has given up until the next start, because of what is in them.",
)
SCRAPE_SECONDS = gauge(
    "leafcuttr_scrape_seconds",
    "How long the scrape before this one took, from request to last byte.",
)

PROCESS_CPU = counter(
    "process_cpu_seconds_total",
    "Seconds of CPU, user and system, that the process has used.",
)
PROCESS_RESIDENT = gauge(
    "process_resident_memory_bytes",
    "Resident memory of the process.",
)
PROCESS_VIRTUAL = gauge(
    "process_virtual_memory_bytes",
    "Virtual memory of the process.",
)
PROCESS_START = gauge(
    "process_start_time_seconds",
    "Start of the process, in seconds since 1970.",
)
PROCESS_FDS = gauge(
    "process_open_fds",
    "File descriptors that are open.",
)
PROCESS_MAX_FDS = gauge(
    "process_max_fds",
    "File descriptors that the process may have open.",
)
GC_COLLECTIONS = counter(
    "python_gc_collections_total",
    "Collections of Python's garbage collector, by generation.",
    "generation",
)

METRICS = (
    BUILD,
    BROKER_STATE,
    HEALTH,
    LOOP_DELAY,
    START_SECONDS,
    CLEAN_START,
    RECOVERED_PARTITIONS,
    RECOVERED_BYTES,
    WRITES_REFUSED,
    DISK_SIZE,
    DISK_FREE,
    OPEN_LOG_FILES,
    CLEANER_ROUNDS,
    CLEANER_READ,
    CLEANER_WRITTEN,
    CLEANER_REMOVED,
    CLEANER_SECONDS,
    CLEANER_WORKING,
    UNCLEANABLE,
    SCRAPE_SECONDS,
)
PROCESS = (
    PROCESS_CPU,
    PROCESS_RESIDENT,
    PROCESS_VIRTUAL,
    PROCESS_START,
    PROCESS_FDS,
    PROCESS_MAX_FDS,
    GC_COLLECTIONS,
)
