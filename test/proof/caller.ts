import { Agent } from 'node:http';
import * as v from 'valibot';
import { EXPERIMENT_TOKEN_HEADER, EXPERIMENTS_API_GROUP, JWT_TYPE } from '../../src/contract/routes.ts';
import { CLIENT_ID } from '../../src/server/identity/user-token.ts';
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

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** Logs in at a server that approves every code at once. @returns a user token */
export async function logIn(caller: HttpCaller): Promise<string> {
  const form = (fields: Record<string, string>): string =>
    new URLSearchParams({ client_id: CLIENT_ID, ...fields }).toString();
  const begun = await caller.send('POST', '/auth/device/auth', {
    headers: FORM,
    body: form({ scope: 'openid userinfo projects' }),
  });
  const { device_code } = v.parse(v.object({ device_code: v.string() }), JSON.parse(begun.text));
  const body = form({ grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code });
  const redeemed = await caller.send('POST', '/auth/token', { headers: FORM, body });
  return v.parse(v.object({ access_token: v.string() }), JSON.parse(redeemed.text)).access_token;
}

/** What a request about reservations of the experiment `demo` carries. */
export async function credentials(caller: HttpCaller, userToken: string): Promise<Record<string, string>> {
  const authorization = `Bearer ${userToken}`;
  const path = `/portal/apis/${EXPERIMENTS_API_GROUP}/v1alpha1/experiments/`;
  const listed = await caller.send('GET', path, { headers: { authorization } });
  const Listed = v.object({ experiments: v.array(v.object({ id: v.string(), name: v.string() })) });
  const demo = v.parse(Listed, JSON.parse(listed.text)).experiments.find(({ name }) => name === 'demo');
  const token = await caller.send('GET', `${path}${demo?.id}`, {
    headers: { authorization, accept: JWT_TYPE },
  });
  if (token.status !== 200) throw new Error(`no experiment token: ${token.status} ${token.text}`);
  return { authorization, [EXPERIMENT_TOKEN_HEADER]: token.text };
}
