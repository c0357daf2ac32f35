/** For applications that embed Orchub: start it, and add commands of their own. */
export { type Config, type ConfigInput, defineConfig, type LoadedConfig, type Problem } from './config.ts'
export type { HandlerContext } from './engine/context.ts'
export type { AddedCommand, Handler } from './engine/handler.ts'
export type { Clock, Log } from './engine/surroundings.ts'
export { type Orchub, type OrchubOptions, readTeam, startOrchub } from './main.ts'
export { type CommandDefinition, defineCommand } from './model/command.ts'
export { AppError, type ErrorCode } from './model/errors.ts'
export type { Receipt } from './model/receipt.ts'
