import { describeSurvival } from './suite.ts'

describeSurvival('claude-code')
