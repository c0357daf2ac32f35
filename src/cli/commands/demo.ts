import { AppError } from '../../model/errors.ts'
import type { Verb } from '../verb.ts'

export const verb: Verb = {
  name: 'demo',
  group: 'Run',
  summary: 'watch a small built-in team at work; needs no key and no network',
  examples: ['orc demo'],
  async run() {
    throw new AppError('INTERNAL', 'The demo is not built yet')
  },
}
