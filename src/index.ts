/** For applications that embed Orchub: start it, and add commands of their own. */

export type { Clock } from './base/clock.ts'
export { AppError, type ErrorCode } from './base/errors.ts'
export type { Log } from './base/log.ts'
export type { CommandEntry, Handler, HandlerContext } from './commands/commands.ts'
export {
  type Config,
  type ConfigInput,
  defineConfig,
  type LoadedConfig,
  type Problem,
} from './config/config.ts'
export { type Orchub, type OrchubOptions, readTeam, startOrchub } from './main.ts'
export { type CommandDefinition, defineCommand } from './protocol/command.ts'
export type { Receipt } from './protocol/receipt.ts'
