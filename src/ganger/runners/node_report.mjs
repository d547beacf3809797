// A reporter for `node --test`: one line of JSON for each test, and one at the end of the run.

export default async function* report(source) {
  const above = new Map();
  for await (const { type, data } of source) {
    if (type === "test:start") {
      const names = above.get(data.file) ?? [];
      names.length = data.nesting;
      names[data.nesting] = data.name;
      above.set(data.file, names);
      continue;
    }
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.details?.type === "suite") continue;
    const names = [...(above.get(data.file) ?? []).slice(0, data.nesting), data.name];
    const skipped = data.skip !== undefined || data.todo !== undefined;
    const error = data.details?.error;
    const words = error ? String(error.cause?.message ?? error.message ?? error) + String(error.cause?.stack ?? "") : "";
    const outcome = type === "test:fail" && data.todo === undefined ? "failed" : skipped ? "skipped" : "passed";
    yield JSON.stringify({ name: names.join(" > "), outcome, words: words.slice(0, 4000), file: data.file ?? "" }) + "\n";
  }
  yield JSON.stringify({ end: true }) + "\n";
}
