CREATE TABLE lead (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  fence       INTEGER NOT NULL,
  pid         INTEGER NOT NULL,
  start_ticks INTEGER NOT NULL,
  boot_id     TEXT NOT NULL,
  host        TEXT NOT NULL,
  expires_at  REAL NOT NULL,
  taken_at    REAL NOT NULL
) STRICT;
INSERT INTO lead VALUES (1, 0, 0, 0, '', '', 0, 0);
CREATE TRIGGER the_lead_stays BEFORE DELETE ON lead BEGIN SELECT RAISE(ABORT, 'the lead is never deleted'); END;
CREATE TRIGGER fences_only_grow BEFORE UPDATE OF fence ON lead WHEN new.fence < old.fence
  BEGIN SELECT RAISE(ABORT, 'a fence never goes back'); END;
CREATE TABLE claims (
  task    TEXT PRIMARY KEY,
  attempt INTEGER NOT NULL,
  token   TEXT NOT NULL,
  open    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE commands (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  at     TEXT NOT NULL,
  kind   TEXT NOT NULL,
  data   TEXT NOT NULL
) STRICT;
CREATE TABLE snapshot (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  seq        INTEGER NOT NULL,
  written_at TEXT NOT NULL,
  text       TEXT NOT NULL
) STRICT;
