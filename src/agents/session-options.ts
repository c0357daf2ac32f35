import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Team } from '../commands/team.ts'
import type { CommandResponse, Listener } from '../delivery/listener.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import type { PermissionDialogs } from '../people/permission-dialogs.ts'
import type { SaidCommand } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Runtime } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import type { Meter } from './meter.ts'
import type { Tokens } from './tokens.ts'

/** What the sessions need of the rest. */
export interface SessionsOptions {
  store: Store
  mailboxes: Mailboxes
  permissions: PermissionDialogs
  meter: Meter
  tokens: Tokens
  clock: Clock
  log: Log
  runtimes: readonly Runtime[]
  team: () => Team
  prompt: (agent: string, nonce: string) => string
  /** Reads commands out of what an agent says, has them carried out, and gives the answers. */
  listen: (agent: string, nonce: string, respond: (response: CommandResponse) => Promise<void>) => Listener
  watch: SessionWatch
  isHalted(): boolean
  /** False: agents are started when something is sent to them, and not with the service. */
  autostart: boolean
  /** Carries out what an agent says by a tool. */
  act: (agent: string, said: SaidCommand, key: string) => Promise<Receipt>
}

/** Who wants to know of the turns that agents take. Nothing of it may fail. */
export interface SessionWatch {
  turnBegan(agent: string): Promise<void>
  turnEnded(agent: string, lastWords: string): Promise<void>
  exited(agent: string, why: string): Promise<void>
  /** It could not be started. */
  unreachable(agent: string, why: string): Promise<void>
}
