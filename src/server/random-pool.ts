/** How much is drawn at once, in bytes. */
const POOL = 4096;

/**
 * Random bytes for ids, drawn in large pieces: to ask the platform for ten bytes costs as much as for thousands. No byte
 * is given out twice. Not for secrets, which should not lie about before they are needed.
 *
 * @param draw that many random bytes, such as `randomBytes` of `node:crypto`
 * @returns a function that gives so many bytes, {@link POOL} at most
 */
export function randomPool(draw: (bytes: number) => Uint8Array): (bytes: number) => Uint8Array {
  let pool: Uint8Array = new Uint8Array(0);
  let used = 0;
  return (bytes) => {
    if (bytes > POOL) throw new RangeError(`${bytes} random bytes are more than a pool holds`);
    if (used + bytes > pool.length) {
      pool = draw(POOL);
      used = 0;
    }
    used += bytes;
    return pool.subarray(used - bytes, used);
  };
}
