import * as v from 'valibot';

/** The answer to a successful health check: an extension. A failed check is a problem body with its own status. */
export const Health = v.object({ status: v.pipe(v.literal('ok'), v.description('`ok`.')) });

const CHECK = {
  service: 'connectivity',
  method: 'GET',
  credentials: 'none',
  success: { status: 200, schema: 'Health' },
  problems: [],
  extension: true,
} as const;

/** The endpoints for supervisors and load balancers, answered under any Host. */
export const HEALTH_ROUTES = {
  health: { ...CHECK, path: '/healthz', summary: 'Whether the process answers' },
  readiness: {
    ...CHECK,
    path: '/readyz',
    summary:
      'Whether requests should be sent here: the database answers, and the server is not about to stop',
  },
} as const;
