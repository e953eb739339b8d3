import { Hono } from 'hono';
import { KEY_SET_PATH } from '../../contract/routes.ts';
import type { Issuer } from '../../tokens/issuer.ts';

/** What of the identity provider needs no socket: its key set, by which user tokens are verified. */
export function createIdentity(issuer: Issuer): Hono {
  const app = new Hono({ strict: false });
  app.get(KEY_SET_PATH, ({ req }) => issuer.fetch(req.raw) ?? Response.json(issuer.keySet));
  return app;
}
