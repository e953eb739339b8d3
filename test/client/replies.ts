/** A reply with JSON, as most services write it. */
export function json(body: unknown, status = 200): Response {
  return Response.json(body, { status });
}

/** A reply with a text of some media type. */
export function text(body: string, type: string, status = 200): Response {
  return new Response(body, { status, headers: { 'content-type': type } });
}

/** A reply with a signed token. */
export function jwt(token: string, status = 200): Response {
  return text(token, 'application/jwt', status);
}

/** A proxy's or a portal's page in place of an answer. */
export function html(status = 200): Response {
  return text('<!doctype html><p>Please log in. Thanks.</p>', 'text/html; charset=utf-8', status);
}

/** A reply whose body breaks off after some bytes. */
export function cut(body: string, status = 200): Response {
  const stream = new ReadableStream({
    pull(controller) {
      controller.enqueue(new TextEncoder().encode(body));
      controller.error(new TypeError('terminated'));
    },
  });
  return new Response(stream, { status, headers: { 'content-type': 'application/json' } });
}

/** A reply that never ends. It counts the bytes that were read. */
export function endless(read: { bytes: number }, status = 200): Response {
  const chunk = new Uint8Array(65_536).fill(0x20);
  const stream = new ReadableStream({
    pull(controller) {
      read.bytes += chunk.length;
      controller.enqueue(chunk);
    },
  });
  return new Response(stream, { status, headers: { 'content-type': 'application/json' } });
}
