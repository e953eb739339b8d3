/** Sends a request: a socket, or a server in the same process. Must not follow redirects. */
export type Fetch = (request: Request) => Promise<Response>;

/** A request as our clients make it. */
export interface Outgoing {
  readonly method: string;
  /** Absolute, in the spelling of a URL. */
  readonly url: string;
  /** By name, in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  /** Asks the origin, whatever caches keep. A header of the caller's own would need another site's permission in a browser. */
  readonly cache?: 'no-cache';
  /** Gives the request up. */
  readonly signal?: AbortSignal;
  /** Whether the reply may go on: its body is then neither waited for nor limited. */
  readonly isEndless?: boolean;
}

/** The headers of a reply, their names in lower case. */
export interface ReplyHeaders extends Iterable<[name: string, value: string]> {
  /** Null where there is none of this name, in whatever case it is written. */
  get(name: string): string | null;
}

/** A reply as far as our clients read it. A `Response` is one. */
export interface Incoming {
  readonly status: number;
  readonly headers: ReplyHeaders;
  readonly body: ReadableStream<Uint8Array> | Iterable<Uint8Array<ArrayBuffer>> | null;
}

/**
 * Sends a request, as a {@link Fetch} does, without `Request` and `Response`: the first use of either loads the
 * platform's whole `fetch`, which takes a command longer than Node itself takes to start.
 */
export type Send = (request: Outgoing) => Promise<Incoming>;

/** Sends requests: a `fetch`, or a {@link Send}, which is quicker to load. */
export type Transport = { fetch: Fetch; send?: undefined } | { send: Send; fetch?: undefined };

/**
 * The {@link Send} of a transport. A request by its `fetch` follows no redirect. A `fetch` says `TypeError` where there is no
 * connection; it becomes an error of another class, so that a `TypeError` of a `Send` is a mistake in a program.
 */
export function sendFrom({ send, fetch }: Transport): Send {
  return (
    send ??
    ((request) =>
      fetch(new Request(request.url, { ...request, redirect: 'manual' })).catch((error: unknown) => {
        throw error instanceof TypeError ? new Error(error.message, { cause: error }) : error;
      }))
  );
}

/** The {@link Fetch} over a {@link Send}, for what needs the platform's types. */
export function fetchOver(send: Send): Fetch {
  return async (request) => {
    const { method, url, headers, signal, cache } = request;
    const anew = cache === 'no-cache' ? { cache } : {};
    const body = request.body ? { body: new Uint8Array(await request.arrayBuffer()) } : {};
    const reply = await send({ method, url, headers: Object.fromEntries(headers), signal, ...anew, ...body });
    const { status } = reply;
    return new Response([204, 205, 304].includes(status) ? null : bodyFor(reply.body), {
      status,
      headers: [...reply.headers],
    });
  };
}

function bodyFor(body: Incoming['body']): ReadableStream<Uint8Array> | Blob | null {
  return body === null || body instanceof ReadableStream ? body : new Blob([...body]);
}
