import { Agent } from 'node:http';
import { poll, startLogin, tokensIn } from '../fixtures/identity.ts';
import { type Listening, sendOverWire, type WireReply } from '../fixtures/wire.ts';

/** An answer over the socket. */
export interface Answer extends WireReply {
  /** How long it took, in milliseconds. */
  took: number;
}

/** Headers and body of a request. */
interface Content {
  headers?: Readonly<Record<string, string>>;
  body?: string;
}

/** Sends requests to one server, over connections that are kept. */
export class HttpCaller implements Listening {
  readonly port: number;
  readonly base: string;
  readonly #agent = new Agent({ keepAlive: true });

  /** @param base the `{base_url}` by which it wants to be called, which may be another replica's address */
  constructor(port: number, base: string) {
    this.port = port;
    this.base = base;
  }

  /**
   * Sends a request that may arrive twice: where the server closed a kept connection while the request was on its way, it is
   * sent again over another one (https://nodejs.org/api/http.html#requestreusedsocket).
   *
   * @throws Error when the connection breaks before the whole answer has come
   */
  async send(method: string, path: string, content: Content = {}): Promise<Answer> {
    const began = performance.now();
    const send = (): Promise<WireReply> =>
      sendOverWire(this, method, path, { ...content, agent: this.#agent });
    const reply = await send().catch((error: NodeJS.ErrnoException & { reusedSocket?: boolean }) => {
      if (error.reusedSocket && error.code === 'ECONNRESET') return send();
      throw error;
    });
    return { ...reply, took: performance.now() - began };
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Logs in at a server that approves every code at once. @returns a user token */
export async function logIn(caller: HttpCaller): Promise<string> {
  const login = await startLogin(caller, 'openid userinfo projects');
  return tokensIn(await poll(caller, login)).access_token;
}
