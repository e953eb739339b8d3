import { Hono } from 'hono';
import { KEY_SET_PATH } from '../../contract/routes.ts';
import type { ServiceIssuer } from '../keys/service-issuer.ts';

/** The identity provider's key set, with which user tokens are verified: its only part that needs no socket. */
export function createIdentity(issuer: ServiceIssuer): Hono {
  const app = new Hono({ strict: false });
  app.get(KEY_SET_PATH, ({ req }) => issuer.publish(req.raw));
  return app;
}
