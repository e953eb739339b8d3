/**
 * Sets an entry of a map as its newest, and removes the oldest one where there are more than `most` then. A map's entries are in
 * the order in which their keys were added.
 */
export function setBounded<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
