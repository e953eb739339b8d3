/** The one state of a page: changed by actions, through one function; components show parts of it. */
export interface Store<State, Action> {
  /** Who reads it in a component or an effect is run again when it changes. */
  readonly state: State;
  /** Changes the state. When it returns, every component shows the new one. */
  dispatch(action: Action): void;
}

/** Derives a value from parts of a state, and gives the same one for as long as the parts are the same. */
export function remembered<State, Parts extends object, Value>(
  partsOf: (state: State) => Parts,
  derive: (parts: Parts) => Value,
): (state: State) => Value {
  let known: { parts: Parts; value: Value } | undefined;
  return (state) => {
    const parts = partsOf(state);
    if (!known || !isSame(known.parts, parts)) known = { parts, value: derive(parts) };
    return known.value;
  };
}

/** Whether each part is the same value as before, as by `Object.is`. */
export function isSame(some: object, others: object): boolean {
  const known = new Map(Object.entries(some));
  return Object.entries(others).every(([name, part]) => Object.is(known.get(name), part));
}
