import type { Draft } from '../../plan/draft.ts'
import type { Refusal } from '../decision.ts'
import type { RunEventOf, RunEventType } from '../event.ts'

/** Writes into the draft what an event changes, or refuses it. */
export type Handler<T extends RunEventType> = (draft: Draft, event: RunEventOf<T>) => Refusal | undefined
export type Handlers<T extends RunEventType = RunEventType> = { [K in T]: Handler<K> }
