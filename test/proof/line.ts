import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** At which point of a message's way something happens. */
export type LinePoint = 'before it is passed on' | 'after it was passed on' | 'when its answer came';

/** A line between a server and its PostgreSQL that can act on what passes. */
export interface ProofLine {
  /** The database's address through the line. */
  readonly url: string;
  /**
   * Calls `act` at the so-manieth message to the database from now on, counting only those that hold `text`.
   *
   * @param text such as `COMMIT`; empty for every message
   */
  arm(text: string, after: number, point: LinePoint, act: () => void): void;
  disarm(): void;
  /** Leads new connections to another server; those that are open stay. */
  leadTo(database: string): void;
  close(): void;
}

interface Trap {
  text: string;
  left: number;
  point: LinePoint;
  act: () => void;
}

/**
 * Opens a line. The driver sends each statement in one piece, so that a piece is a message.
 *
 * @param seen is shown every piece that goes to the database
 */
export async function openLine(
  database: string,
  seen: (piece: Buffer) => void = () => undefined,
): Promise<ProofLine> {
  let target = new URL(database);
  const sockets = new Set<Socket>();
  let trap: Trap | undefined;
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    let atAnswer: (() => void) | undefined;
    const end = (): void => {
      near.destroy();
      far.destroy();
    };
    near.on('data', (bytes) => {
      seen(bytes);
      const sprung = trap && bytes.includes(trap.text) && --trap.left === 0 ? trap : undefined;
      if (!sprung) {
        far.write(bytes);
        return;
      }
      trap = undefined;
      if (sprung.point === 'before it is passed on') {
        sprung.act();
        // As if it had never been sent.
        end();
      } else if (sprung.point === 'after it was passed on') far.write(bytes, () => sprung.act());
      else {
        atAnswer = sprung.act;
        far.write(bytes);
      }
    });
    far.on('data', (bytes) => {
      atAnswer?.();
      if (atAnswer) end();
      else near.write(bytes);
    });
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', end).on('close', () => {
        sockets.delete(socket);
        end();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('no port');
  const url = new URL(database);
  url.port = String(bound.port);
  return {
    url: url.href,
    arm(text, after, point, act) {
      trap = { text, left: after, point, act };
    },
    disarm() {
      trap = undefined;
    },
    leadTo(other) {
      target = new URL(other);
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
