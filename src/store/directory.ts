import type { Person } from '../server/identity/user-token.ts';
import type { OwnerStore } from '../server/ownership.ts';
import type { Directory, ExperimentRecord, Membership, ProjectRecord } from '../server/portal/directory.ts';
import { changed, type SqlDatabase, type SqlRow } from './sql.ts';

// Columns are named, never `*`: a newer server may add one while an older one runs, and PostgreSQL refuses a prepared
// statement whose result has changed.
const PROJECT = 'project.id, project.name, project.description, project.created_ms, project.expires_ms';
const EXPERIMENT = `experiment.id, experiment.project, experiment.name, experiment.description,
  experiment.created_ms, experiment.expires_ms`;

/** Brings people, projects and memberships to what an operator's file says. */
async function settle(
  database: SqlDatabase,
  { people, projects, exact }: Parameters<Directory['settle']>[0],
): Promise<void> {
  const expiry = (table: string, value: string): string =>
    exact ? value : `CASE WHEN ${table}.expires_ms > ${value} THEN ${table}.expires_ms ELSE ${value} END`;
  await database.transaction(async (sql) => {
    for (const { id, name } of people) {
      await sql.run('INSERT INTO person (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING', id, name);
    }
    const settleMembers = async (scope: string, members: readonly Membership[]): Promise<void> => {
      if (exact) await sql.run('DELETE FROM membership WHERE scope = $1', scope);
      for (const { name, role } of members) {
        await sql.run(
          `INSERT INTO membership (person, scope, role) SELECT id, $1, $2 FROM person WHERE name = $3
           ON CONFLICT (person, scope) DO NOTHING`,
          scope,
          role,
          name,
        );
      }
    };
    for (const { id, name, description, createdAt, expiresAt, experiments, members } of projects) {
      const kept = await sql.first(
        `INSERT INTO project (id, name, description, created_ms, expires_ms) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (name) DO UPDATE SET expires_ms = ${expiry('project', '$5')}
         RETURNING id`,
        id,
        name,
        description,
        createdAt,
        expiresAt,
      );
      const project = String(kept?.['id']);
      await settleMembers(project, members);
      for (const experiment of experiments) {
        const keptExperiment = await sql.first(
          `INSERT INTO experiment (id, project, name, description, created_ms, expires_ms)
           VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (project, name) DO UPDATE SET expires_ms = ${expiry('experiment', '$6')}
           RETURNING id`,
          experiment.id,
          project,
          experiment.name,
          experiment.description,
          experiment.createdAt,
          experiment.expiresAt,
        );
        await settleMembers(String(keptExperiment?.['id']), experiment.members);
      }
    }
    const named = new Set(projects.map(({ name }) => name));
    for (const { id, name } of await sql.all('SELECT id, name FROM project')) {
      if (named.has(String(name))) continue;
      await sql.run(
        `DELETE FROM membership
         WHERE scope = $1 OR scope IN (SELECT id FROM experiment WHERE project = $1)`,
        String(id),
      );
    }
  });
}

/** Users, projects and experiments. */
export function directoryStore(database: SqlDatabase): Directory {
  return {
    settle: (settled) => settle(database, settled),

    async people() {
      return (await database.reader.all('SELECT id, name FROM person ORDER BY id')).map(toPerson);
    },

    async person(id) {
      const row = await database.reader.first('SELECT id, name FROM person WHERE id = $1', id);
      return row && toPerson(row);
    },

    async projectsOf(person) {
      const rows = await database.reader.all(
        `SELECT ${PROJECT}, role FROM project JOIN membership ON scope = project.id
         WHERE person = $1 ORDER BY project.id`,
        person,
      );
      return rows.map((row) => ({ ...toProject(row), role: String(row['role']) }));
    },

    async project(id) {
      const row = await database.reader.first(`SELECT ${PROJECT} FROM project WHERE id = $1`, id);
      return row && toProject(row);
    },

    async experimentsOf(person) {
      const rows = await database.reader.all(
        `SELECT ${EXPERIMENT}, role FROM experiment JOIN membership ON scope = experiment.id
         WHERE person = $1 ORDER BY experiment.id`,
        person,
      );
      return rows.map((row) => ({ ...toExperiment(row), role: String(row['role']) }));
    },

    async experiment(id) {
      const row = await database.reader.first(`SELECT ${EXPERIMENT} FROM experiment WHERE id = $1`, id);
      return row && toExperiment(row);
    },

    async role(person, scope) {
      const row = await database.reader.first(
        'SELECT role FROM membership WHERE person = $1 AND scope = $2',
        person,
        scope,
      );
      return row && String(row['role']);
    },

    async leads(scope, person, most) {
      const rows = await database.reader.all(
        `SELECT person.name FROM membership JOIN person ON person.id = membership.person
         WHERE membership.scope = $1 AND membership.role = 'lead'
           AND EXISTS (SELECT 1 FROM membership AS own WHERE own.scope = $1 AND own.person = $2)
         ORDER BY person.name LIMIT $3`,
        scope,
        person,
        most,
      );
      return rows.map(({ name }) => String(name));
    },

    async addExperiment(experiment, lead, { most, since }) {
      return database.transaction(async (sql) => {
        // Locks the project, so that no two transactions count at once.
        await sql.run('UPDATE project SET name = name WHERE id = $1', experiment.project);
        const counted = await sql.first(
          'SELECT count(*) AS count FROM experiment WHERE project = $1 AND (expires_ms > $2 OR created_ms > $3)',
          experiment.project,
          experiment.createdAt,
          since,
        );
        if (Number(counted?.['count']) >= most) return 'too_many';
        const isAdded = await changed(
          sql,
          `INSERT INTO experiment (id, project, name, description, created_ms, expires_ms)
           VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (project, name) DO NOTHING RETURNING id`,
          experiment.id,
          experiment.project,
          experiment.name,
          experiment.description,
          experiment.createdAt,
          experiment.expiresAt,
        );
        if (!isAdded) return 'name_taken';
        await sql.run(
          "INSERT INTO membership (person, scope, role) VALUES ($1, $2, 'lead')",
          lead,
          experiment.id,
        );
        return 'added';
      });
    },
  };
}

function toPerson(row: SqlRow): Person {
  return { id: String(row['id']), name: String(row['name']) };
}

function toProject(row: SqlRow): ProjectRecord {
  return {
    id: String(row['id']),
    name: String(row['name']),
    description: String(row['description']),
    createdAt: Number(row['created_ms']),
    expiresAt: Number(row['expires_ms']),
  };
}

function toExperiment(row: SqlRow): ExperimentRecord {
  return { ...toProject(row), project: String(row['project']) };
}

/** The issuer that each id of a project or an experiment belongs to. Rows are never updated. */
export function ownerStore(database: SqlDatabase): OwnerStore {
  return {
    async register(id, issuer) {
      const kept = await database.reader.first('SELECT issuer FROM owner WHERE id = $1', id);
      if (kept) return String(kept['issuer']);
      // Another replica may have inserted it meanwhile: then its row stays and is returned.
      const row = await database.first(
        `INSERT INTO owner (id, issuer) VALUES ($1, $2)
         ON CONFLICT (id) DO UPDATE SET issuer = owner.issuer RETURNING issuer`,
        id,
        issuer,
      );
      return String(row?.['issuer']);
    },
  };
}
