import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { raceProcesses } from '../store/starting-gate.ts';
import type { RaceAnswer, RaceOrder } from './race-process.ts';

/** Runs each order in a process of its own, all at once. */
export async function race(orders: readonly RaceOrder[]): Promise<RaceAnswer[]> {
  const program = fileURLToPath(new URL('race-process.ts', import.meta.url));
  const finishes = await raceProcesses(...orders.map((order) => [program, JSON.stringify(order)]));
  return finishes.flatMap(({ output, errors }): RaceAnswer[] => {
    expect(errors).toBe('');
    return JSON.parse(output);
  });
}

/** How often each answer was given. */
export function tally(answers: readonly RaceAnswer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const answer of answers) {
    const key = answer.ok ? 'won' : answer.why;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}
