import type { Person } from '../server/identity/user-token.ts';
import type { OwnerStore } from '../server/ownership.ts';
import type {
  Directory,
  ExperimentRecord,
  Membership,
  ProjectRecord,
  WithRole,
} from '../server/portal/directory.ts';
import { returnsRow, type SqlDatabase } from './sql.ts';

// Columns are named, never `*`: a newer server may add one while an older one runs, and PostgreSQL refuses a prepared
// statement whose result has changed.
const PROJECT = `project.id, project.name, project.description,
  project.created_ms AS "createdAt", project.expires_ms AS "expiresAt"`;
const EXPERIMENT = `experiment.id, experiment.project, experiment.name, experiment.description,
  experiment.created_ms AS "createdAt", experiment.expires_ms AS "expiresAt"`;

const ADD_EXPERIMENT = `INSERT INTO experiment (id, project, name, description, created_ms, expires_ms)
  VALUES ($id, $project, $name, $description, $createdAt, $expiresAt) ON CONFLICT (project, name)`;

/** Brings people, projects and memberships to what an operator's file says. */
async function settle(
  database: SqlDatabase,
  { people, projects, exact }: Parameters<Directory['settle']>[0],
): Promise<void> {
  const expiry = (table: string): string =>
    exact
      ? 'excluded.expires_ms'
      : `CASE WHEN ${table}.expires_ms > $expiresAt THEN ${table}.expires_ms ELSE $expiresAt END`;
  await database.transaction(async (sql) => {
    for (const person of people) {
      await sql.run(
        'INSERT INTO person (id, name) VALUES ($id, $name) ON CONFLICT (name) DO NOTHING',
        person,
      );
    }
    const settleMembers = async (scope: string, members: readonly Membership[]): Promise<void> => {
      if (exact) await sql.run('DELETE FROM membership WHERE scope = $scope', { scope });
      for (const member of members) {
        await sql.run(
          `INSERT INTO membership (person, scope, role) SELECT id, $scope, $role FROM person WHERE name = $name
           ON CONFLICT (person, scope) DO NOTHING`,
          { ...member, scope },
        );
      }
    };
    for (const settled of projects) {
      const kept = await sql.first(
        `INSERT INTO project (id, name, description, created_ms, expires_ms)
         VALUES ($id, $name, $description, $createdAt, $expiresAt)
         ON CONFLICT (name) DO UPDATE SET expires_ms = ${expiry('project')} RETURNING id`,
        settled,
      );
      const project = String(kept?.['id']);
      await settleMembers(project, settled.members);
      for (const experiment of settled.experiments) {
        const keptExperiment = await sql.first(
          `${ADD_EXPERIMENT} DO UPDATE SET expires_ms = ${expiry('experiment')} RETURNING id`,
          { ...experiment, project },
        );
        await settleMembers(String(keptExperiment?.['id']), experiment.members);
      }
    }
    const named = new Set(projects.map(({ name }) => name));
    for (const { id, name } of await sql.all('SELECT id, name FROM project')) {
      if (named.has(String(name))) continue;
      await sql.run(
        `DELETE FROM membership
         WHERE scope = $id OR scope IN (SELECT id FROM experiment WHERE project = $id)`,
        { id },
      );
    }
  });
}

/** Users, projects and experiments. */
export function directoryStore(database: SqlDatabase): Directory {
  const { reader } = database;
  return {
    settle: (settled) => settle(database, settled),

    people: () => reader.all<Person>('SELECT id, name FROM person ORDER BY id'),
    person: (id) => reader.first<Person>('SELECT id, name FROM person WHERE id = $id', { id }),

    projectsOf: (person) =>
      reader.all<WithRole<ProjectRecord>>(
        `SELECT ${PROJECT}, role FROM project JOIN membership ON scope = project.id
         WHERE person = $person ORDER BY project.id`,
        { person },
      ),

    project: (id) => reader.first<ProjectRecord>(`SELECT ${PROJECT} FROM project WHERE id = $id`, { id }),

    experimentsOf: (person) =>
      reader.all<WithRole<ExperimentRecord>>(
        `SELECT ${EXPERIMENT}, role FROM experiment JOIN membership ON scope = experiment.id
         WHERE person = $person ORDER BY experiment.id`,
        { person },
      ),

    experiment: (id) =>
      reader.first<ExperimentRecord>(`SELECT ${EXPERIMENT} FROM experiment WHERE id = $id`, { id }),

    async role(person, scope) {
      const sql = 'SELECT role FROM membership WHERE person = $person AND scope = $scope';
      const row = await reader.first(sql, { person, scope });
      return row && String(row['role']);
    },

    async leads(scope, person, most) {
      const rows = await reader.all(
        `SELECT person.name FROM membership JOIN person ON person.id = membership.person
         WHERE membership.scope = $scope AND membership.role = 'lead'
           AND EXISTS (SELECT 1 FROM membership AS own WHERE own.scope = $scope AND own.person = $person)
         ORDER BY person.name LIMIT $most`,
        { scope, person, most },
      );
      return rows.map(({ name }) => String(name));
    },

    async addExperiment(experiment, lead, { most, since }) {
      return database.transaction(async (sql) => {
        // Locks the project, so that no two transactions count at once.
        await sql.run('UPDATE project SET name = name WHERE id = $project', experiment);
        const counted = await sql.first(
          `SELECT count(*) AS count FROM experiment
           WHERE project = $project AND (expires_ms > $createdAt OR created_ms > $since)`,
          { ...experiment, since },
        );
        if (Number(counted?.['count']) >= most) return 'too_many';
        const isAdded = await returnsRow(sql, `${ADD_EXPERIMENT} DO NOTHING RETURNING id`, experiment);
        if (!isAdded) return 'name_taken';
        await sql.run("INSERT INTO membership (person, scope, role) VALUES ($lead, $id, 'lead')", {
          ...experiment,
          lead,
        });
        return 'added';
      });
    },
  };
}

/** The issuer that each id of a project or an experiment belongs to. Rows are never updated. */
export function ownerStore(database: SqlDatabase): OwnerStore {
  return {
    async register(id, issuer) {
      const kept = await database.reader.first('SELECT issuer FROM owner WHERE id = $id', { id });
      if (kept) return String(kept['issuer']);
      // Another replica may have inserted it meanwhile: then its row stays and is returned.
      const row = await database.first(
        `INSERT INTO owner (id, issuer) VALUES ($id, $issuer)
         ON CONFLICT (id) DO UPDATE SET issuer = owner.issuer RETURNING issuer`,
        { id, issuer },
      );
      return String(row?.['issuer']);
    },
  };
}
