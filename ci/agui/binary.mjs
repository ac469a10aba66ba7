// Says what the official packages make of the binary form. Of each line of standard input, an event, it writes one line:
// {"bytes": HEX, "event": EVENT, "warned": YES}: what the encoder makes of it, with its length before it, what the decoder
// makes of that, and whether the encoder warned of the event. Of a line that is a text in HEX, a message of somebody else,
// "event" alone. "error" is why there is none.
import { createInterface } from 'node:readline';
import { EventEncoder } from '@ag-ui/encoder';
import { decode, AGUI_MEDIA_TYPE } from '@ag-ui/proto';

const encoder = new EventEncoder({ accept: AGUI_MEDIA_TYPE });
for await (const line of createInterface({ input: process.stdin })) {
  const given = JSON.parse(line);
  const says = { warned: false };
  console.warn = () => (says.warned = true);
  try {
    let message = Buffer.from(typeof given === 'string' ? given : '', 'hex');
    if (typeof given !== 'string') {
      const frame = encoder.encodeBinary(given);
      says.bytes = Buffer.from(frame).toString('hex');
      message = frame.subarray(4);
    }
    says.event = decode(message);
  } catch (e) {
    says.error = e.message;
  }
  console.log(JSON.stringify(says));
}
