import { Hono } from 'hono';
import { KEY_SET_PATH } from '../../contract/routes.ts';
import type { ServiceIssuer } from '../keys/service-issuer.ts';

/** What of the identity provider needs no socket: its key set, by which user tokens are verified. */
export function createIdentity(issuer: ServiceIssuer): Hono {
  const app = new Hono({ strict: false });
  app.get(KEY_SET_PATH, ({ req }) => issuer.publish(req.raw));
  return app;
}
