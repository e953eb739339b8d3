import { describe, expect, test } from 'vitest';
import { foldersFor, type Variables } from '../../../src/session/profiles/folders.ts';

describe('where things are kept', () => {
  test.each<[string, Variables, [config: string, state: string, cache: string]]>([
    [
      'below the home folder',
      {},
      ['/home/ada/.config/slices-conn', '/home/ada/.local/state/slices-conn', '/home/ada/.cache/slices-conn'],
    ],
    [
      'in the XDG folders',
      { XDG_CONFIG_HOME: '/c', XDG_STATE_HOME: '/s', XDG_CACHE_HOME: '/k' },
      ['/c/slices-conn', '/s/slices-conn', '/k/slices-conn'],
    ],
    [
      'a relative or empty XDG folder counts as unset, as its specification asks',
      { XDG_CONFIG_HOME: 'c', XDG_STATE_HOME: './s', XDG_CACHE_HOME: '' },
      ['/home/ada/.config/slices-conn', '/home/ada/.local/state/slices-conn', '/home/ada/.cache/slices-conn'],
    ],
    [
      'the program’s own variables go before XDG, and name the folder itself',
      {
        XDG_CONFIG_HOME: '/c',
        XDG_STATE_HOME: '/s',
        XDG_CACHE_HOME: '/k',
        SLICES_CONN_CONFIG_DIR: '/own/c',
        SLICES_CONN_STATE_DIR: '/own/s',
        SLICES_CONN_CACHE_DIR: '/own/k',
      },
      ['/own/c', '/own/s', '/own/k'],
    ],
    [
      'the program’s own variables count as unset when they are empty',
      { XDG_STATE_HOME: '/s', SLICES_CONN_STATE_DIR: '' },
      ['/home/ada/.config/slices-conn', '/s/slices-conn', '/home/ada/.cache/slices-conn'],
    ],
  ])('%s', (_, env, [config, state, cache]) => {
    expect(foldersFor(env, '/home/ada')).toEqual({ config, state, cache });
  });
});
