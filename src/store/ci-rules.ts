import type { CiRule, CiRules } from '../server/identity/ci-rules.ts';
import { auditCiJob } from './audit.ts';
import { type Locking, returnsRow, type SqlDatabase } from './sql.ts';

const RULE = `id, experiment, person, ci, issuer, repository, repository_id AS "repositoryId", ref, ref_type AS "refType",
  environment, created_ms AS "createdAt", expires_ms AS "expiresAt"`;

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
        return sql.first<CiRule>(
          `INSERT INTO ci_rule (id, experiment, person, ci, issuer, repository, ref, ref_type, environment, created_ms,
             expires_ms)
           VALUES ($id, $experiment, $person, $ci, $issuer, $repository, $ref, $refType, $environment, $createdAt,
             $expiresAt)
           ON CONFLICT (id) DO UPDATE SET expires_ms = $expiresAt RETURNING ${RULE}`,
          rule,
        );
      }),

    ofExperiment: (experiment, now) =>
      database.reader.all<CiRule>(
        `SELECT ${RULE} FROM ci_rule WHERE experiment = $experiment AND expires_ms > $now ORDER BY created_ms, id`,
        { experiment, now },
      ),

    ofRepository: (issuer, repository) =>
      database.reader.all<CiRule>(
        `SELECT ${RULE} FROM ci_rule
         WHERE issuer = $issuer AND (repository_id = $id OR (repository_id IS NULL AND repository = $name))
         ORDER BY created_ms, id`,
        { ...repository, issuer },
      ),

    hold: (id, repositoryId) =>
      returnsRow(
        database,
        `UPDATE ci_rule SET repository_id = $repositoryId
         WHERE id = $id AND (repository_id IS NULL OR repository_id = $repositoryId) RETURNING id`,
        { id, repositoryId },
      ),

    remove: (experiment, id) =>
      returnsRow(database, 'DELETE FROM ci_rule WHERE experiment = $experiment AND id = $id RETURNING id', {
        experiment,
        id,
      }),

    isLive: (id, now) =>
      returnsRow(database.reader, 'SELECT id FROM ci_rule WHERE id = $id AND expires_ms > $now', { id, now }),

    audit: (entry) => auditCiJob(database, locking, entry),
  };
}
