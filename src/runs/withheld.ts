import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../config/config.ts'
import { isWithin, type Withheld } from '../workspaces/withheld.ts'
import type { Driver } from './driver.ts'

/** What no agent is given of a folder that it gets as an input: it may be the folder that all of this lies in. */
export function withheldFrom(
  { folder, place }: Pick<Driver, 'folder' | 'place'>,
  { stateFolder, store }: Pick<Config, 'stateFolder' | 'store'>,
): Withheld[] {
  const secret = (what: string) => (path: string) => ({ path, what, isSecret: true })
  const ofStore = store.engine === 'sqlite' ? ['', '-wal', '-shm'].map((end) => `${store.file}${end}`) : []
  return [
    // A plan that lies in it itself, as that of the demo, has its inputs there.
    ...(isWithin(realpathSync(folder), stateFolder)
      ? ['operator.token', 'agents']
          .map((name) => join(stateFolder, name))
          .map(secret('holds tokens of the service'))
      : [secret('is the state folder of the service, which holds its tokens')(stateFolder)]),
    ...ofStore.map(secret('is the store of the service')),
    { path: dirname(place), what: 'holds the runs of this plan', isSecret: false },
    { path: place, what: 'is the folder of this run', isSecret: false },
  ]
}
