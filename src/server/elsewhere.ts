import { Hono } from 'hono';
import { refusal } from './problem-error.ts';

/**
 * Stands where a service would be on a server that has users of its own: every request is 404 with a word that says where the
 * service is (DESIGN.md, "The reference server").
 *
 * @param service such as `portal`
 * @param address the service's base address
 */
export function elsewhere(service: string, address: string): Hono {
  const app = new Hono({ strict: false });
  app.all('*', () => {
    throw refusal('not_found', `This server has no ${service} of its own. The ${service} is at ${address}.`);
  });
  return app;
}
