import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A line between a server and its PostgreSQL that can end a connection at any one message of the protocol. */
export interface MessageLine {
  /** The database's address through the line. */
  readonly url: string;
  /**
   * Ends the connection in place of passing on a message. What came before it has been passed on; the database finishes
   * that, and hears of nothing more.
   *
   * @param at which message from now on, from 0, of either side and on any connection; or the first with this name, such
   * as `to the database: Q COMMIT`
   * @param then whether new connections are taken at once, or none until {@link end}
   */
  cut(at: number | string, then: 'back' | 'away'): void;
  /** All is well again. @returns the message that was cut; undefined when fewer passed */
  end(): string | undefined;
  close(): void;
}

/** A message's type and its body; a server's first one on a connection has no type. */
interface Message {
  bytes: Buffer;
  name: string;
}

/** Opens a line. Only for a database on loopback: messages in TLS can't be told apart. */
export async function openMessageLine(database: string): Promise<MessageLine> {
  const target = new URL(database);
  const pairs = new Set<[Socket, Socket]>();
  let trap: { at: number | string; passed: number; then: 'back' | 'away' } | undefined;
  let struck: string | undefined;
  let away = false;

  /** @returns whether the message may pass */
  function passes(from: string, { name }: Message): boolean {
    if (!trap) return true;
    const said = `${from} ${name}`;
    if (trap.at !== (typeof trap.at === 'number' ? trap.passed : said)) {
      trap.passed += 1;
      return true;
    }
    struck = said;
    away = trap.then === 'away';
    trap = undefined;
    return false;
  }

  const server = createServer((near) => {
    if (away) {
      near.destroy();
      return;
    }
    const far = connect(Number(target.port), target.hostname);
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    let isCut = false;
    const forward = (from: string, to: Socket, read: (bytes: Buffer) => Message[]) => (bytes: Buffer) => {
      if (isCut) return;
      for (const message of read(bytes)) {
        if (passes(from, message)) to.write(message.bytes);
        else {
          isCut = true;
          near.destroy();
          // What was passed on arrives, and is done.
          far.end();
          if (away) for (const [one] of pairs) one.destroy();
          return;
        }
      }
    };
    near.on('data', forward('to the database:', far, reader(true)));
    far.on('data', forward('from the database:', near, reader(false)));
    near.on('error', () => near.destroy()).on('close', () => far.end());
    far
      .on('error', () => far.destroy())
      .on('close', () => {
        pairs.delete(pair);
        near.destroy();
      });
    for (const socket of pair) socket.setNoDelay(true);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('no port');
  const url = new URL(database);
  url.port = String(bound.port);
  return {
    url: url.href,
    cut(at, then) {
      trap = { at, passed: 0, then };
      struck = undefined;
    },
    end() {
      trap = undefined;
      away = false;
      return struck;
    },
    close() {
      server.close();
      for (const [near, far] of pairs) {
        near.destroy();
        far.destroy();
      }
    },
  };
}

/** Takes bytes as they come, and gives the messages that are whole (PostgreSQL, "Message Formats"). */
function reader(startsUntyped: boolean): (bytes: Buffer) => Message[] {
  let rest = Buffer.alloc(0);
  let untyped = startsUntyped;
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    const found: Message[] = [];
    for (;;) {
      const head = untyped ? 0 : 1;
      if (rest.length < head + 4) return found;
      const length = head + rest.readInt32BE(head);
      if (rest.length < length) return found;
      const message = rest.subarray(0, length);
      rest = rest.subarray(length);
      const type = untyped ? 'startup' : String.fromCharCode(message[0] ?? 0);
      const isCommit = message.includes('COMMIT\0');
      found.push({ bytes: message, name: isCommit ? `${type} COMMIT` : type });
      untyped = false;
    }
  };
}
