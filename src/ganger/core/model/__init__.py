"""What a run consists of: tasks, workers, the ledger of deliveries, CI's facts. Values, no behaviour."""
