import { setTimeout as sleep } from 'node:timers/promises';
import { addressBlock } from './identity/address-block.ts';

/** How many refusals a second are answered without delay, for each address. */
export const PROMPT_REFUSALS = 20;

/** The delay of each further refusal, in milliseconds. */
export const REFUSAL_DELAY = 250;

/**
 * Slows down an address that sends many wrong tokens, so that refusing them takes little of the server's time (HOSTILE.md
 * 47): its connections are limited, and each then carries four requests a second. Requests with right tokens are not
 * delayed, even from the same address.
 *
 * @param now milliseconds
 * @returns counts a refusal of an address, and resolves when it may be answered
 */
export function createRefusalDelay(now: () => number): (address: string) => Promise<void> {
  let began = now();
  const refused = new Map<string, number>();
  return async (address) => {
    if (Math.abs(now() - began) >= 1000) {
      refused.clear();
      began = now();
    }
    const block = addressBlock(address);
    const count = (refused.get(block) ?? 0) + 1;
    refused.set(block, count);
    if (count > PROMPT_REFUSALS) await sleep(REFUSAL_DELAY);
  };
}
