"""What a run consists of: tasks, workers, the ledger of deliveries, facts about CI. Values, no behaviour."""
