import { jsonText } from '../contract/visible-text.ts';

/**
 * A reply in JSON, whose text may repeat what a request said: characters that could make a terminal show something else are
 * escaped. All JSON replies are made here.
 *
 * @param headers besides `content-type`
 */
export function jsonReply(
  body: unknown,
  { status = 200, headers = {} }: { status?: number; headers?: Readonly<Record<string, string>> } = {},
): Response {
  return new Response(jsonText(body), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });
}
