import { jsonText } from '../contract/visible-text.ts';

/** The status of a reply, by default 200, and its headers besides `content-type`. */
interface JsonReplyInit {
  status?: number;
  headers?: Readonly<Record<string, string>>;
}

/**
 * A reply in JSON, whose text may repeat what a request said: characters that could make a terminal show something else are
 * escaped. All JSON replies are made here.
 */
export function jsonReply(body: unknown, init?: JsonReplyInit): Response {
  return jsonTextReply(jsonText(body), init);
}

/** A reply of a text that {@link jsonText} has made. */
export function jsonTextReply(text: string, { status = 200, headers = {} }: JsonReplyInit = {}): Response {
  return new Response(text, { status, headers: { 'content-type': 'application/json', ...headers } });
}
