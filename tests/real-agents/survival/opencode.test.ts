import { describeSurvival } from './suite.ts'

describeSurvival('opencode')
