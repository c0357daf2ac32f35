import { describeSurvival } from './suite.ts'

describeSurvival('codex')
