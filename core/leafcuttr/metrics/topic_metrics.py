"""Metrics of topics and partitions. Their values are read in `leafcuttr.server.admin.read_topics`."""

from leafcuttr_sdk.metrics import counter, gauge

MESSAGES_IN = counter(
    "kafka_server_brokertopicmetrics_messagesin_total",
    "Records appended to a topic since the broker started, markers of transactions among them.",
    "topic",
)
BYTES_IN = counter(
    "kafka_server_brokertopicmetrics_bytesin_total",
    "Bytes of record batches appended to a topic since the broker started, as they are stored.",
    "topic",
)
MESSAGES_OUT = counter(
    "kafka_server_brokertopicmetrics_messagesout_total",
    "Records sent to consumers of a topic since the broker started, counted by offsets: what compaction has removed "
    "in between counts too.",
    "topic",
)
BYTES_OUT = counter(
    "kafka_server_brokertopicmetrics_bytesout_total",
    "Bytes of record batches sent to consumers of a topic since the broker started.",
    "topic",
)
LOG_SIZE = gauge(
    "kafka_log_log_size",
    "Bytes of the batches in a partition.",
    "topic",
    "partition",
)
LOG_START_OFFSET = gauge(
    "kafka_log_log_logstartoffset",
    "The first offset that a partition still has.",
    "topic",
    "partition",
)
LOG_END_OFFSET = gauge(
    "kafka_log_log_logendoffset",
    "The offset that a partition gives to its next record; also its high watermark.",
    "topic",
    "partition",
)
LAST_STABLE_OFFSET_LAG = gauge(
    "kafka_cluster_partition_laststableoffsetlag",
    "Records at the end of a partition that read_committed consumers cannot see yet, because a transaction is open.",
    "topic",
    "partition",
)
LOG_SEGMENTS = gauge(
    "kafka_log_log_numlogsegments",
    "Segments of a partition.",
    "topic",
    "partition",
)
PARTITION_OFFLINE = gauge(
    "leafcuttr_partition_offline",
    "1 for each partition that serves nothing because its files are damaged or in doubt; the log of the broker says "
    "why. Partitions that serve have no such series.",
    "topic",
    "partition",
)
OFFLINE_PARTITIONS = gauge(
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "Partitions that serve nothing because their files are damaged or in doubt.",
)
TOPICS = gauge(
    "kafka_controller_kafkacontroller_globaltopiccount",
    "Topics, internal ones among them.",
)
PARTITIONS = gauge(
    "kafka_controller_kafkacontroller_globalpartitioncount",
    "Partitions of all topics.",
)
UNNAMED_PARTITIONS = gauge(
    "leafcuttr_metrics_unnamed_partitions",
    "Partitions that have no series of their own because of lc.metrics.max.partitions.",
)

METRICS = (
    MESSAGES_IN,
    BYTES_IN,
    MESSAGES_OUT,
    BYTES_OUT,
    LOG_SIZE,
    LOG_START_OFFSET,
    LOG_END_OFFSET,
    LAST_STABLE_OFFSET_LAG,
    LOG_SEGMENTS,
    PARTITION_OFFLINE,
    OFFLINE_PARTITIONS,
    TOPICS,
    PARTITIONS,
    UNNAMED_PARTITIONS,
)
