// Says of streams what the official packages of AG-UI say of them. Of each line of standard input, a list of events, it
// writes one line: {"at": N, "says": "..."}, where N is the index of the event that the client fails at, -1 none; and
// "shapes", the events that the schemas refuse, with what they say.
import { createInterface } from 'node:readline';
import { transformChunks, verifyEvents } from '@ag-ui/client';
import { EventSchemas } from '@ag-ui/core/schemas';
import { Subject } from 'rxjs';

for await (const line of createInterface({ input: process.stdin })) {
  const events = JSON.parse(line);
  const verdict = { at: -1, says: '', shapes: {} };
  events.forEach((event, i) => {
    const { error } = EventSchemas.safeParse(event);
    if (error) verdict.shapes[i] = error.issues.map((x) => `${x.path.join('.')}: ${x.message}`).join('; ');
  });
  const source = new Subject();
  let now = 0;
  const failed = (e) => {
    if (verdict.at < 0) Object.assign(verdict, { at: now, says: e.message });
  };
  // As the client has them: what comes in chunks is told apart first.
  source.pipe(transformChunks(false), verifyEvents(false)).subscribe({ error: failed });
  for (now = 0; now < events.length && verdict.at < 0; now++) source.next(structuredClone(events[now]));
  if (verdict.at < 0) source.complete();
  console.log(JSON.stringify(verdict));
}
