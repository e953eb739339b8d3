import { EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP, routePath } from '../../src/contract/routes.ts';

const groups = { projects_api_group: PROJECTS_API_GROUP, experiments_api_group: EXPERIMENTS_API_GROUP };

/** Where reservations are booked; below it is each of them. */
export const CONNECTIVITY_PATH = routePath('createReservation', { ...groups, id: '' });
/** Where several changes are asked for together. */
export const BATCH_PATH = routePath('batchReservations', groups);
