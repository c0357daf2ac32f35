import type { Refusal } from '../decision.ts'
import type { Draft } from '../draft.ts'
import type { HappeningOf, HappeningType } from '../happening.ts'

/** Writes into the draft what a happening changes, or refuses it. */
export type Handler<T extends HappeningType> = (draft: Draft, event: HappeningOf<T>) => Refusal | undefined
export type Handlers<T extends HappeningType = HappeningType> = { [K in T]: Handler<K> }
