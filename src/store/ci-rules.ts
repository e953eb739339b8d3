import { CI_NAMES } from '../contract/ci-rules.ts';
import type { CiRule, CiRules } from '../server/identity/ci-rules.ts';
import { auditCiJob } from './audit.ts';
import { changed, type Locking, type SqlDatabase, type SqlRow } from './sql.ts';

const COLUMNS = `id, experiment, person, ci, issuer, repository, repository_id, ref, ref_type, environment,
  created_ms, expires_ms`;

/** Whose CI jobs act for whom. Rules that have expired are removed when the next one is added to their experiment. */
export function ciRuleStore(database: SqlDatabase, locking: Locking): CiRules {
  return {
    add: (rule, most) =>
      database.transaction(async (sql) => {
        // Locks the experiment, so that no two transactions count at once.
        await sql.run('UPDATE experiment SET name = name WHERE id = $experiment', rule);
        await sql.run(
          'DELETE FROM ci_rule WHERE experiment = $experiment AND expires_ms <= $createdAt',
          rule,
        );
        const counted = await sql.first(
          'SELECT count(*) AS count FROM ci_rule WHERE experiment = $experiment AND id <> $id',
          rule,
        );
        if (Number(counted?.['count']) >= most) return undefined;
        const row = await sql.first(
          `INSERT INTO ci_rule (${COLUMNS}) VALUES ($id, $experiment, $person, $ci, $issuer, $repository, NULL, $ref,
             $refType, $environment, $createdAt, $expiresAt)
           ON CONFLICT (id) DO UPDATE SET expires_ms = $expiresAt RETURNING ${COLUMNS}`,
          rule,
        );
        return row && toRule(row);
      }),

    async ofExperiment(experiment, now) {
      const rows = await database.reader.all(
        `SELECT ${COLUMNS} FROM ci_rule WHERE experiment = $experiment AND expires_ms > $now ORDER BY created_ms, id`,
        { experiment, now },
      );
      return rows.map(toRule);
    },

    async ofRepository(issuer, repository) {
      const rows = await database.reader.all(
        `SELECT ${COLUMNS} FROM ci_rule
         WHERE issuer = $issuer AND (repository_id = $id OR (repository_id IS NULL AND repository = $name))
         ORDER BY created_ms, id`,
        { ...repository, issuer },
      );
      return rows.map(toRule);
    },

    hold: (id, repositoryId) =>
      changed(
        database,
        `UPDATE ci_rule SET repository_id = $repositoryId
         WHERE id = $id AND (repository_id IS NULL OR repository_id = $repositoryId) RETURNING id`,
        { id, repositoryId },
      ),

    remove: (experiment, id) =>
      changed(database, 'DELETE FROM ci_rule WHERE experiment = $experiment AND id = $id RETURNING id', {
        experiment,
        id,
      }),

    async isLive(id, now) {
      const sql = 'SELECT 1 AS live FROM ci_rule WHERE id = $id AND expires_ms > $now';
      return (await database.reader.first(sql, { id, now })) !== undefined;
    },

    audit: (entry) => auditCiJob(database, locking, entry),
  };
}

function toRule(row: SqlRow): CiRule {
  const text = (name: string): string | null => (row[name] === null ? null : String(row[name]));
  return {
    id: String(row['id']),
    experiment: String(row['experiment']),
    person: String(row['person']),
    ci: CI_NAMES.find((name) => name === row['ci']) ?? 'github',
    issuer: String(row['issuer']),
    repository: String(row['repository']),
    repositoryId: text('repository_id'),
    ref: text('ref'),
    refType: text('ref_type'),
    environment: text('environment'),
    createdAt: Number(row['created_ms']),
    expiresAt: Number(row['expires_ms']),
  };
}
